"""What models and providers accept: windows, prices, provider errors, tool output and files."""
