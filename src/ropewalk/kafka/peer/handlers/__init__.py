"""One file per private API, as in `kafka/handlers`."""
