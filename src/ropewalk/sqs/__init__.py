"""The SQS door: every AWS SDK talks to it as it is, in AWS JSON 1.0 and in Query/XML; it translates and holds no rule."""
