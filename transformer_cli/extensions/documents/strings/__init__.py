"""Files whose values are texts for people: message catalogues, tables, JSON and YAML."""
