"""The internal listener: what nodes of one cluster ask each other, on connections that proved the cluster's secret."""
