"""What models and providers accept: windows, prices, refusals, tool output and files."""
