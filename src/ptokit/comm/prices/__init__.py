"""What collectives and routed tables would take on many ranks: schedules and traffic, priced by a model of the link."""
