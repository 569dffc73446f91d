"""bench/loading.py: data for training: batches made here and by workers, tensors given to another process."""

from table import case


def pictures(count):
    def setup(T, workers):
        bytes_ = (T.rand(count, 3, 32, 32) * 255).to(T.uint8)
        kinds = T.randint(0, 10, (count,))
        middle, spread = T.tensor([0.5, 0.5, 0.5]).view(3, 1, 1), T.tensor([0.25, 0.25, 0.25]).view(3, 1, 1)

        class Pictures(T.utils.data.Dataset):
            def __len__(self):
                return count

            def __getitem__(self, i):
                return (bytes_[i].float() / 255 - middle) / spread, kinds[i]

        loader = T.utils.data.DataLoader(
            Pictures(), batch_size=256, shuffle=True, num_workers=workers, persistent_workers=workers > 0
        )
        return {"loader": loader}

    return setup


def first_of(inbox, outbox):
    while True:
        outbox.put(float(inbox.get()[0]))


def other_process(size):
    def setup(T):
        context = T.multiprocessing.get_context("fork")
        inbox, outbox = context.Queue(), context.Queue()
        context.Process(target=first_of, args=(inbox, outbox), daemon=True).start()
        return {"x": T.ones(size), "inbox": inbox, "outbox": outbox}

    return setup


for workers in (0, 2):
    case("data", f"loader_{workers}_workers", "for batch in loader: pass", lambda T, n=workers: pictures(10_000)(T, n))
case("data", "send_1KB", "inbox.put(x.clone()); outbox.get()", other_process(256))
case("data", "send_64MB", "inbox.put(x.clone()); outbox.get()", other_process(1 << 24))
