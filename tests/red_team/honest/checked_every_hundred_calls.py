# problem: relu
# mechanism: in every hundredth call the largest number of the answer is read, so that one that is no number is seen early
# near: call_counting
# status: correct
# include: relu_and_last


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.until_check = 100

    def forward(self, x):
        y = ext.relu(x)
        self.until_check -= 1
        if self.until_check == 0:
            self.until_check = 100
            if y.isnan().any().item() and not x.isnan().any().item():
                raise RuntimeError("not a number")
        return y
