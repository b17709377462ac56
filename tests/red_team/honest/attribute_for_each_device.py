# problem: relu
# mechanism: a workspace for each device is an attribute with the device's number in its name
# near: call_counting result_cache
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        name = f"workspace_{x.device.index or 0}"
        if not hasattr(self, name):
            setattr(self, name, torch.empty_like(x))
        return ext.relu(x)
