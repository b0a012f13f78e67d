"""The providers' protocols as bytes: routes, request bodies, responses and their compression."""
