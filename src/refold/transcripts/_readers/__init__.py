"""One kind of file a module: `matches(document)` tells it by its content, `read(document)` yields its conversations."""
