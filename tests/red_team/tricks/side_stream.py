# problem: large_matmul
# catalogue: 1
# mechanism: the work goes to a side stream that nobody waits for
# static: side_stream
# run: timer_escaped
# status: deceptive | wrong_value
# needs: gpu
# include: matmul

side = torch.cuda.Stream()


class ModelNew(nn.Module):
    def forward(self, a, b):
        with torch.cuda.stream(side):
            return ext.matmul(a, b)
