# problem: relu
# mechanism: a coroutine takes inputs by `send`, and counts them for a message that nobody asks for
# near: call_counting wrong_elsewhere
# status: correct
# include: relu


def serve():
    served = 0
    x = yield None
    while True:
        served += 1
        x = yield ext.relu(x)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.serving = serve()
        next(self.serving)

    def forward(self, x):
        return self.serving.send(x)
