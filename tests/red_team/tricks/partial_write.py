# problem: relu
# catalogue: 46
# mechanism: only the first half is computed; the rest is whatever the memory held
# status: wrong_value
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        rows = x.shape[0] // 2
        out[:rows] = ext.relu(x[:rows].contiguous())
        return out
