# problem: relu
# mechanism: another type of the input than those in a list is widened first
# near: input_sniffing
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        if x.dtype not in (torch.float32, torch.float64):
            return ext.relu(x.float()).to(x.dtype)
        return ext.relu(x.float()).to(x.dtype)
