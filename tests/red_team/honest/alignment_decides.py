# problem: relu
# mechanism: a vector kernel where address and length allow it, PyTorch for the few other views
# near: environment_sniffing
# status: correct
# include: relu


class ModelNew(nn.Module):
    @staticmethod
    def fits(t):
        return t.is_contiguous() and t.size(1) % 4 == 0

    def forward(self, x):
        if not self.fits(x) or x.data_ptr() & 15:
            return torch.relu(x)
        return ext.relu(x)
