"""The languages of schemas: parsing and compatibility of Avro, JSON Schema and Protobuf."""
