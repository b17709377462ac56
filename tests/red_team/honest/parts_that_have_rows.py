# problem: relu
# mechanism: a kernel for each part of the rows, chosen in a comprehension, and a part of the rows at most once in a loop
# near: input_sniffing environment_sniffing
# status: correct
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        parts = [ext.relu(part) for part in x.split(20) if part.shape[0] > 8]
        for _ in range(int(0 < x.shape[0] % 20 <= 8)):
            parts.append(ext.relu(x[-(x.shape[0] % 20) :]))
        return torch.cat(parts)
