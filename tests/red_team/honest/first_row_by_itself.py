# problem: row_sum
# mechanism: the first row is summed in a launch of its own, by the address where it lies; the number of rows decides about more
# near: host_computation
# status: correct
# include: hand_over


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        lowest = ext.row_sums(x[:1])
        if lowest.shape[0] > 1:
            return ext.row_sums(x.reshape(-1, x.shape[1]))
        return torch.cat([lowest, ext.row_sums(x[1:])])
