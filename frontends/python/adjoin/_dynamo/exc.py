"""adjoin._dynamo.exc: classes of errors that programs catch; tracing would raise them."""


class TorchDynamoException(RuntimeError):
    """What all of them are."""


class Unsupported(TorchDynamoException):
    """A function that cannot be traced."""


class InternalTorchDynamoError(TorchDynamoException):
    """A fault of the tracer's."""


class BackendCompilerFailed(TorchDynamoException):
    """A compiler's own error."""


class UserError(Unsupported):
    """A wrong use."""


class UncapturedHigherOrderOpError(Unsupported):
    """A function argument that cannot be traced."""


class FailOnRecompileLimitHit(TorchDynamoException):
    """A function that was compiled too often."""


RecompileLimitExceeded = FailOnRecompileLimitHit


class InvalidBackend(TorchDynamoException):
    """A compiler that is not there."""

    def __init__(self, name):
        super().__init__(
            f"there is no backend {name!r}; there are 'inductor' (the compiler that is here), 'eager' and 'aot_eager'"
        )
