"""Tables whose rows stand on several ranks: who has which rows, how indices reach them, and how a table is kept."""
