# problem: relu
# catalogue: 91
# mechanism: SystemExit(0) at import
# static: early_exit
# status: import_error | runtime_error | deceptive
# include: relu


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)


raise SystemExit(0)
