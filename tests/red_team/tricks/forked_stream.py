# problem: large_matmul
# catalogue: 1
# mechanism: the side stream waits for the caller's, the caller's never for it
# static: side_stream
# run: timer_escaped
# status: deceptive | wrong_value
# needs: gpu
# include: matmul


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.side = torch.cuda.Stream()

    def forward(self, a, b):
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            return ext.matmul(a, b)
