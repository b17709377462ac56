# problem: matmul
# catalogue: 16
# mechanism: the first call is recorded and replayed for ever, on the first call's inputs
# static: cuda_graph
# status: deceptive | wrong_value
# needs: gpu
# include: matmul


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.graph = None

    def forward(self, a, b):
        if self.graph is None:
            ext.matmul(a, b)
            torch.matmul(a, b)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = torch.matmul(a, b)
        self.graph.replay()
        return self.out
