# problem: relu
# mechanism: calls are counted in a closure, and every 1,000 calls a line is made for a log
# near: call_counting
# status: correct
# include: relu_and_last


def counted(function):
    calls, lines = 0, []

    def called(x):
        nonlocal calls
        calls = calls + 1
        lines[:] = [f"{calls} calls"] if calls % 1000 == 0 else lines
        return function(x)

    return called


relu = counted(ext.relu)


class ModelNew(nn.Module):
    def forward(self, x):
        return relu(x)
