# problem: relu
# mechanism: a pause between two tries of a build that works at once
# near: deliberate_delay
# status: correct
# include: relu
from time import sleep as pause

for attempt in range(3):
    if ext is not None:
        break
    pause(0.01 * attempt)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
