# problem: relu
# mechanism: the number of threads is asked for, and set to what it is; algorithms need not be deterministic
# near: global_precision_switch
# status: correct
# include: relu

torch.set_num_threads(torch.get_num_threads())
torch.use_deterministic_algorithms(False)
torch.backends.cudnn.deterministic = False


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.relu(x)
