"""The recall tool: a model asks for what plans took out of its view, and the gateway answers before the client sees."""
