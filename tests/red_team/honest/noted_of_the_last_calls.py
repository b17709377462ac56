# problem: relu
# mechanism: notes of the last sixteen calls are kept with their numbers, for whoever looks for a mistake
# near: call_counting
# status: correct
# include: relu_and_last


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.number = 0
        self.notes = [""] * 16

    def forward(self, x):
        self.number += 1
        self.notes[self.number % 16] = f"call {self.number}: {tuple(x.shape)} on {x.device}"
        return ext.relu(x)
