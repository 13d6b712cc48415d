import fc from "fast-check";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { entryStream, type EntryStreamOptions } from "../../../src/server/streaming/entry_stream.ts";
import { FakeClock, turn } from "../../../src/testing/clocks.ts";

function streamOf(pages: readonly (readonly string[])[], options: Partial<EntryStreamOptions<string>> = {}) {
  const seen = { requested: 0, ended: [] as string[] };
  const clock = new FakeClock();
  const stream = entryStream<string>({
    async *follow() {
      for (const page of pages) {
        seen.requested++;
        yield page;
      }
    },
    frame: (entry) => entry,
    clock,
    onEnd: (reason) => seen.ended.push(reason),
    ...options,
  });
  return { ...stream, seen, clock };
}

Deno.test("entryStream() sends every byte once and in order for any paging", async () => {
  await fc.assert(fc.asyncProperty(
    fc.array(fc.array(fc.string({ unit: "grapheme" }))),
    async (pages) => {
      const { body, seen } = streamOf(pages);
      assertEquals(await new Response(body).text(), pages.flat().join(""));
      assertEquals(seen.ended, ["complete"]);
    },
  ));
});

Deno.test("entryStream() sends chunks of at most 16 KiB, whatever the length of an entry", async () => {
  for (const length of [10, 1_000, 30_000]) {
    const page = Array.from({ length: 40 }, () => "é漢😀".repeat(length));
    const { body } = streamOf([page]);
    const chunks: Uint8Array<ArrayBuffer>[] = [];
    for await (const chunk of body) chunks.push(chunk.slice());
    assert(chunks.every((chunk) => chunk.length <= 16 * 1024));
    assertEquals(await new Blob(chunks).text(), page.join(""));
  }
});

Deno.test("entryStream() ends a frame that has begun before its closing frame", async () => {
  const { body, end } = streamOf([["x".repeat(50_000)]], { closingFrame: "bye" });
  const reader = body.getReader();
  const first = (await reader.read()).value!;
  end();
  let rest = "";
  for (let read; !(read = await reader.read()).done;) rest += new TextDecoder().decode(read.value);
  assertEquals(new TextDecoder().decode(first) + rest, "x".repeat(50_000) + "bye");
});

Deno.test("entryStream() requests nothing before the first read", async () => {
  const { seen } = streamOf([["a"], ["b"]], { opening: "o" });
  await turn();
  assertEquals(seen.requested, 0);
});

Deno.test("entryStream() requests the next page only after the previous one was read", async () => {
  const { body, seen } = streamOf([["a"], ["b"], ["c"]]);
  const reader = body.getReader();
  await reader.read();
  await turn();
  assertEquals(seen.requested, 1);
  await reader.read();
  await turn();
  assertEquals(seen.requested, 2);
  await reader.cancel();
});

Deno.test("entryStream() skips empty pages", async () => {
  assertEquals(await new Response(streamOf([[], ["a"], [], ["b"], []]).body).text(), "ab");
});

Deno.test("entryStream() aborts the body when the log fails", async () => {
  const { body, seen } = streamOf([], {
    // deno-lint-ignore require-yield -- it fails first
    async *follow() {
      throw new Error("store");
    },
  });
  await assertRejects(() => new Response(body).text(), Error, "store");
  assertEquals(seen.ended, ["failed"]);
});

Deno.test("entryStream() pings while a read waits, and not otherwise", async () => {
  const gate = Promise.withResolvers<void>();
  const { body, clock } = streamOf([], {
    async *follow() {
      await gate.promise;
      yield ["a"];
    },
    ping: { text: "p", every_ms: 15_000 },
  });
  const reader = body.getReader();
  const first = reader.read();
  await clock.advance(15_000);
  assertEquals(new TextDecoder().decode((await first).value), "p");
  await clock.advance(60_000);
  assertEquals(clock.pending, 0);
  const second = reader.read();
  await turn();
  gate.resolve();
  assertEquals(new TextDecoder().decode((await second).value), "a");
  assertEquals(clock.pending, 0);
});

Deno.test("entryStream() ends with its closing frame once, with and without a waiting read", async () => {
  for (const waits of [true, false]) {
    const aborted: boolean[] = [];
    const { body, end, seen } = streamOf([], {
      async *follow(signal) {
        yield ["a"];
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        aborted.push(true);
      },
      closingFrame: "bye",
    });
    const reader = body.getReader();
    await reader.read();
    const next = waits ? reader.read() : null;
    await turn();
    end();
    end();
    assertEquals(new TextDecoder().decode((await (next ?? reader.read())).value), "bye");
    assertEquals((await reader.read()).done, true);
    assertEquals(seen.ended, ["ended"]);
    assertEquals(aborted.length, waits ? 1 : 0); // without a waiting read the next page was not requested
  }
});

Deno.test("entryStream() closes the log when the client disconnects", async () => {
  let released = false;
  const { body, seen, end } = streamOf([], {
    async *follow(signal) {
      try {
        yield ["a"];
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      } finally {
        released = true;
      }
    },
  });
  const reader = body.getReader();
  await reader.read();
  const waiting = reader.read();
  await turn();
  await reader.cancel();
  await waiting;
  await turn();
  end();
  assertEquals([released, seen.ended], [true, ["disconnected"]]);
});

Deno.test("entryStream() asks for pages of about 32 KiB, whatever the length of an entry", async () => {
  for (const [length, expected] of [[1, 256], [1_024, 32], [4 * 1024, 8], [200_000, 1]] as const) {
    const asked: number[] = [];
    const { body } = streamOf([], {
      async *follow(_signal, pageEntries) {
        for (let page = 0; page < 3; page++) {
          asked.push(pageEntries());
          yield await Promise.resolve(["x".repeat(length)]);
        }
      },
    });
    await new Response(body).body?.pipeTo(new WritableStream());
    assertEquals(asked, [8, expected, expected]);
  }
});
