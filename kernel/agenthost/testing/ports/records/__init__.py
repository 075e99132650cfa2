"""What every backend of the port RECORDS promises, one contract a part of it."""
