"""tests/programs/old/language.py: 2017, a word model: an LSTM whose hidden state is carried from piece to piece."""

import math
import torch
import torch.nn as nn
from torch.autograd import Variable

torch.manual_seed(5)
text = "the cat sat on the mat and the dog sat on the log and ".split() * 30
words = sorted(set(text))
data = torch.LongTensor([words.index(w) for w in text])
batch_size, bptt = 4, 9


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid):
        super(RNNModel, self).__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, 1)
        self.decoder = nn.Linear(nhid, ntoken)
        self.nhid = nhid
        self.encoder.weight.data.uniform_(-0.1, 0.1)
        self.decoder.bias.data.fill_(0)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.encoder(input), hidden)
        decoded = self.decoder(output.view(output.size(0) * output.size(1), output.size(2)))
        return decoded.view(output.size(0), output.size(1), decoded.size(1)), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters()).data
        return (Variable(weight.new(1, bsz, self.nhid).zero_()), Variable(weight.new(1, bsz, self.nhid).zero_()))


def repackage_hidden(h):
    """Wraps hidden states in new Variables, to detach them from their history."""
    if type(h) == Variable:
        return Variable(h.data)
    return tuple(repackage_hidden(v) for v in h)


train_data = batchify(data, batch_size)
model = RNNModel(len(words), 12, 24)
criterion = nn.CrossEntropyLoss()
lr = 5.0
for epoch in range(12):
    total, hidden = 0, model.init_hidden(batch_size)
    for i in range(0, train_data.size(0) - 1, bptt):
        seq_len = min(bptt, len(train_data) - 1 - i)
        source = Variable(train_data[i:i + seq_len])
        targets = Variable(train_data[i + 1:i + 1 + seq_len].view(-1))
        hidden = repackage_hidden(hidden)
        model.zero_grad()
        output, hidden = model(source, hidden)
        loss = criterion(output.view(-1, len(words)), targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(-lr, p.grad.data)
        total += loss.data * seq_len
    ppl = math.exp(total[0] / (len(train_data) - 1))
    print('epoch %d ppl %.2f' % (epoch, ppl))
assert ppl < 2.0
