"""What programs and people see: the HTTP face of one node."""
