"""A training loop of the size of a rehearsal: gradient descent on one weight, which ends at 3."""

weight = 0.0
for _step in range(200):
    weight -= 0.1 * 2 * (weight - 3)
print(f"after 200 steps: weight {weight:.3f}")
assert abs(weight - 3) < 1e-6
