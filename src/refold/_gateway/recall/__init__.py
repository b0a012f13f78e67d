"""The recall tool: the model requests content that plans removed, and the gateway answers the call itself."""
