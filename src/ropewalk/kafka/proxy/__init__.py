"""The Kafka door of a node that holds no partition: it names itself for all of them, and passes requests on to whoever leads."""
