"""What others read: files made from findings, plans and traces."""
