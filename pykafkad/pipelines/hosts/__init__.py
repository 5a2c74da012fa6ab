"""What runs plans: local.py is a plain loop."""
