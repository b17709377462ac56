# problem: relu
# mechanism: the launch has a name for profilers, whose code asks for frames
# near: frame_access
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        with torch.profiler.record_function("relu"):
            return ext.relu(x)
