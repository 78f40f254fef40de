"""Who earns over 50K, and for which reasons? train_plain.py and train_r2et.py: one line apart."""

import sys

import torch
from sklearn.metrics import roc_auc_score
from torch.nn.functional import cross_entropy

import r2et

epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
torch.set_num_threads(1)  # a tiny network: threads only get in each other's way
torch.manual_seed(0)
data = r2et.data.load("adult")
x, y = data.train
model = r2et.models.MLP(x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for _ in range(epochs):
    for batch in torch.randperm(len(y)).split(256):
        loss = cross_entropy(model(x[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

with torch.no_grad():
    odds = model(data.test.x).diff(dim=1)[:, 0]
rows, grad = data.test.x[:200], r2et.explain.Gradient()
attack = r2et.attack.StrongAttack(r2et.region.L2(0.3), budget="fast")
kept = attack(model, grad, rows, k=8).precision.mean()
print(f"test AUC {roc_auc_score(data.test.y, odds):.3f}")
print(f"P@8 under attack, radius 0.3: {kept:.1%}")
print(
    f"different top-8 sets among {len(rows)} rows: {r2et.rank.distinct_top_k(grad(model, rows), 8)}"
)
