/** The log of a run: limits, secrets, readers, and a store that fails. */
import type { Entry } from "../../../src/kernel/host.ts";
import type { Run } from "../../../src/runs/types.ts";
import type { PreampError } from "../../../src/sdk/errors.ts";
import { MockProvider } from "../../../src/testing/mock_provider.ts";
import { toPlain } from "../../../src/sdk/json.ts";
import type { JsonObject } from "../../../src/sdk/types.ts";
import { ConflictError } from "../../../src/store/store.ts";
import { assert, assertEquals, assertMatch, assertRejects } from "../../assert.ts";
import { calls, hook, nextTurn, tool, until } from "../../support/sessions.ts";
import { CALLER, immediate, service, SlowStore, type TestPlan } from "../../support/runs.ts";

Deno.test("follow() yields every entry after `after` once, and ends with the run", async () => {
  for (const slow of [false, true]) {
    const { post, runs, clock } = service({
      plans: {
        p: { providers: [[calls(["t"]), { text: "x".repeat(400), delay_ms: 10 }]], tools: [tool("t")] },
      },
      ...(slow ? { store: (memory) => new SlowStore(memory) } : {}),
    });
    const handle = await post("p");
    const read = async (after: number) => {
      const seqs: number[] = [];
      for await (const page of runs.follow(CALLER, handle.id, { after })) {
        seqs.push(...page.map((entry) => entry.seq));
      }
      return seqs;
    };
    const readers = [0, 5, 17].map(read);
    for (let turn = 0; turn < 100 && handle.current().ended_at === null; turn++) await clock.advance(10);
    const last =
      (await handle.settled("end"), (await runs.events(CALLER, handle.id, { limit: 1_000 })).at(-1)!.seq);
    const range = (from: number) => Array.from({ length: last - from }, (_, index) => from + index + 1);
    assertEquals(await Promise.all(readers), [range(0), range(5), range(17)]);
    assertEquals(await Promise.all([0, last - 1, last, last + 99].map(read)), [range(0), [last], [], []]);
  }
});

Deno.test("follow() yields pages of stored entries only", async () => {
  const many = Array.from(
    { length: 300 },
    (_, index) => ["t", { n: index }, `c${index}`] as [string, JsonObject, string],
  );
  const { post, runs, memory } = service({
    plans: {
      p: { providers: [[calls(...many), "done"]], tools: [tool("t")], limits: { max_tool_calls: 300 } },
    },
    limits: { max_answer_tool_calls: 300 },
    store: (store) => new SlowStore(store),
  });
  const handle = await post("p");
  let most = 0;
  let read = 0;
  for await (const page of runs.follow(CALLER, handle.id, {})) {
    most = Math.max(most, page.length);
    read += page.length;
    const stored = memory.entries(handle.id, 0, Number.MAX_SAFE_INTEGER)!;
    assert(page.at(-1)!.seq <= stored.length);
    if (read % 3 === 0) await nextTurn();
  }
  assertEquals([most <= 256, handle.current().status], [true, "completed"]);
  assertEquals(read, memory.entries(handle.id, 0, Number.MAX_SAFE_INTEGER)!.length);
});

Deno.test("follow() of a run that executes gets each commit without a read of the store", async () => {
  let reads = 0;
  const { post, runs, clock } = service({
    plans: { p: { providers: [[{ text: "x".repeat(400), delay_ms: 10 }]] } },
    store: (memory) => {
      const store = new SlowStore(memory);
      const entries = store.entries.bind(store);
      return Object.assign(store, {
        entries: (log: string, after: number, limit: number) => {
          reads++;
          return entries(log, after, limit);
        },
      });
    },
  });
  const handle = await post("p");
  const seqs: number[] = [];
  const reading = (async () => {
    for await (const page of runs.follow(CALLER, handle.id, {})) seqs.push(...page.map(({ seq }) => seq));
  })();
  for (let turn = 0; turn < 100 && handle.current().ended_at === null; turn++) await clock.advance(10);
  await reading;
  assertEquals(seqs, seqs.map((_, index) => index + 1));
  assert(seqs.length > 20);
  assertEquals(reads, 0);
});

Deno.test("follow() ends when its reader stops, and leaves no listener behind", async () => {
  const { post, runs, clock } = service({
    plans: { slow: { providers: [[{ text: "slow", delay_ms: 1_000 }]] } },
  });
  const handle = await post("slow");
  const gone = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = gone.signal;
  gone.signal.addEventListener = (...args: unknown[]) => {
    listeners++;
    return addEventListener.apply(gone.signal, args as never);
  };
  gone.signal.removeEventListener = (...args: unknown[]) => {
    listeners--;
    return removeEventListener.apply(gone.signal, args as never);
  };
  const read = (async () => {
    for await (const _page of runs.follow(CALLER, handle.id, { signal: gone.signal }));
  })();
  await until(() => clock.pending > 1 && listeners > 0);
  assertEquals(listeners, 1);
  gone.abort();
  await read;
  assertEquals(listeners, 0);
  assertEquals(handle.current().status, "running");
  await clock.advance(1_000);
  await handle.settled("end");
});

Deno.test("events() returns stored entries in pages", async () => {
  const { finish, runs } = service();
  const { id } = await finish("plain");
  const all = await runs.events(CALLER, id, {});
  assertEquals((await runs.events(CALLER, id, { after: 3, limit: 2 })).map((entry) => entry.seq), [4, 5]);
  assertEquals(await runs.events(CALLER, id, { after: all.length }), []);
});

Deno.test("events() of an expired log fails with the run object", async () => {
  const { finish, runs, memory } = service();
  const run = await finish("plain");
  memory.commit([{ deleteLog: run.id }]);
  const error = await assertRejects(() => runs.events(CALLER, run.id, {})) as PreampError;
  assertEquals([error.code, (error.facts.run as Run).id], ["log_expired", run.id]);
});

Deno.test("a full log ends the run; deltas do not count", async () => {
  const chatty: TestPlan = {
    providers: [[calls(["t"]), "never"]],
    tools: [async (coordinator) =>
      await coordinator.mount(
        "tools",
        tool("t", async () => {
          for (let n = 0; n < 100; n++) {
            await coordinator.hooks.emit("my:event", { text: "x".repeat(1_000) });
          }
        }),
      )],
  };
  const streaming: TestPlan = {
    providers: [new MockProvider({ response: "x".repeat(4_000), chunk_chars: 10 })],
  };
  for (
    const [limits, stop_reason] of [
      [{ max_log_entries: 60 }, "limit:max_log_entries"],
      [{ max_log_bytes: 40_000 }, "limit:max_log_bytes"],
    ] as const
  ) {
    const { finish, names } = service({ plans: { chatty, streaming }, limits });
    const run = await finish("chatty");
    assertEquals([run.status, run.stop_reason], ["incomplete", stop_reason]);
    assertEquals((await names(run.id)).at(-1), "run:end");
    assertEquals((await finish("streaming")).status, "completed");
  }
});

Deno.test("deltas do not grow a log without bound: very many are joined, very much text ends the run", async () => {
  const response = "x".repeat(40_000);
  const streaming: TestPlan = { providers: [new MockProvider({ response, chunk_chars: 10 })] };
  const joined = service({ plans: { streaming }, limits: { max_log_entries: 100 } });
  const run = await joined.finish("streaming");
  const pieces = (await joined.entries(run.id)).filter(({ event }) => event === "content_block:delta");
  assertEquals([run.status, pieces.map(({ data }) => data.delta).join("")], ["completed", response]);
  assert(pieces.length < 110, `${pieces.length} pieces`);
  const endless = new MockProvider();
  endless.complete = async (_request, options = {}) => {
    while (!options.signal?.aborted) {
      options.onDelta?.({ block_index: 0, block_type: "text", delta: "for ever and " });
      await immediate();
    }
    throw options.signal.reason;
  };
  const much = service({ plans: { endless: { providers: [endless] } }, limits: { max_log_bytes: 5_000 } });
  assertEquals((await much.finish("endless")).stop_reason, "limit:max_log_bytes");
});

Deno.test("a secret that is split over deltas is in none of them, nor in the joined text", async () => {
  const secret = "sk-live-0123456789";
  for (const chunk_chars of [1, 2, 5, 7]) {
    const provider = new MockProvider({ response: `the key is ${secret}, keep it`, chunk_chars });
    const { finish, entries } = service({ plans: { leak: { secrets: [secret], providers: [provider] } } });
    const run = await finish("leak");
    const pieces = (await entries(run.id)).filter(({ event }) => event === "content_block:delta");
    const text = pieces.map(({ data }) => data.delta).join("");
    assertEquals(text, "the key is [REDACTED], keep it");
    assertEquals(text, run.output_text);
    assertEquals(pieces.map(({ data }) => data.sequence), pieces.map((_, index) => index + 1));
  }
});

Deno.test("secrets are in no entry, no record and no object, whatever their way there", async () => {
  const secret = "sk-live-0123456789";
  const plan: TestPlan = {
    secrets: [secret],
    providers: [
      new MockProvider({
        responses: [calls(["t", { key: secret, api_key: "short", total_tokens: 5 }]), `the key is ${secret}`],
        chunk_chars: 1_000,
      }),
    ],
    tools: [async (coordinator) => {
      coordinator.session_state.note = `kept ${secret}`;
      await coordinator.mount("tools", tool("t", () => ({ password: "hunter2", text: `got ${secret}` })));
    }],
    hooks: [
      hook(
        "tool:pre",
        () => ({ action: "inject_context", context_injection: `remember ${secret}`, reason: secret }),
      ),
      hook("tool:post", () => ({ action: "continue", user_message: `used ${secret}` })),
      hook("session:end", () => {
        throw new Error(secret);
      }),
    ],
  };
  const failing: TestPlan = { secrets: [secret], providers: [[{ error: { message: `401 for ${secret}` } }]] };
  const { finish, entries, memory, runs } = service({ plans: { plan, failing } });
  for (const name of ["plan", "failing"]) {
    const run = await finish(name, { prompt: `my key is ${secret}`, metadata: { note: secret } });
    const log = JSON.stringify(await entries(run.id));
    for (const text of [log, JSON.stringify(run), JSON.stringify(memory.get("run", run.id))]) {
      assert(
        !text.includes(secret),
        text.slice(Math.max(0, text.indexOf(secret) - 200), text.indexOf(secret) + 40),
      );
    }
    assert(!JSON.stringify(await runs.sessions.messages(CALLER, run.session_id)).includes(secret));
    if (name !== "plan") continue;
    // messages are redacted by value only, so tool:post and the next request agree
    const [post, answer] = (await entries(run.id)).filter(({ event, data }) =>
      event === "tool:post" || (data.message as JsonObject | undefined)?.role === "tool"
    );
    const input = { key: "[REDACTED]", api_key: "short", total_tokens: 5 };
    const output = { password: "hunter2", text: "got [REDACTED]" };
    assertEquals(post?.data.tool_input, input);
    assertEquals((post?.data.result as JsonObject).output, output);
    const { content } = answer?.data.message as JsonObject;
    assertEquals(JSON.parse(String(content).split("\n\n")[0]!), output);
  }
});

Deno.test("the plan in the log is redacted with `raw` too", async () => {
  const { finish, entries } = service({ plans: { p: { session: { raw: true } } } });
  const run = await finish(null, {
    plan: { name: "p", providers: [{ module: "x", config: { api_key: "sk-live", model: "m" } }] },
  });
  const start = (await entries(run.id)).find((entry) => entry.event === "session:start");
  assertEquals(start?.data.raw, {
    name: "p",
    providers: [{ module: "x", config: { api_key: "[REDACTED]", model: "m" } }],
  });
});

Deno.test("a store that fails ends the run, logs an error, and frees the session once it stores the end", async () => {
  let rounds = 0;
  for (let at = 2, reached = true; reached; at++, rounds++) {
    let commits = 0;
    let repaired = false;
    const { post, finish, clock, logs, memory, runs } = service({
      plans: { p: { providers: [[calls(["t"]), "done"]], tools: [tool("t")] } },
      store: (memory) => {
        const commit = memory.commit.bind(memory);
        memory.commit = (changes, fence) => {
          if (++commits >= at && !repaired) throw new Error("disk full");
          return commit(changes, fence);
        };
        return new SlowStore(memory);
      },
    });
    const failed = Promise.withResolvers<Run>();
    const handle = await post("p", {}, { endNotStored: failed.resolve });
    const { id, session_id } = handle;
    reached = await Promise.race([failed.promise, handle.settled("end").then(() => null)]) !== null;
    if (reached) {
      assert((await failed.promise).ended_at !== null);
      await clock.advance(2_000);
      assertEquals([handle.current().ended_at, (await runs.get(CALLER, id)).ended_at], [null, null]);
      assertEquals((await runs.list(CALLER, {})).data.map(({ ended_at }) => ended_at), [null]);
      await assertRejects(() => post("p", { session_id }), Error, "is not stored yet");
    }
    repaired = true;
    while (handle.current().ended_at === null) await clock.advance(50);
    const run = await handle.settled("end");
    if (reached) assertEquals(run, await failed.promise, String(at));
    assertEquals([await runs.get(CALLER, id), memory.get("run", id)!.value], [run, toPlain(run)]);
    assertEquals(logs.filter(({ event }) => event.startsWith("run_end_")).map(({ event }) => event), [
      ...reached ? ["run_end_not_stored", "run_end_stored"] : [],
    ]);
    await nextTurn();
    assertEquals((await finish("p", { session_id })).status, "completed");
  }
  assert(rounds > 3, `${rounds} rounds`);
});

for (const waits of [false, true]) {
  const which = waits ? "a queued run" : "a run";
  Deno.test(`one failed commit, whichever it is: ${which} does not begin, or ends and frees its session`, async () => {
    let rounds = 0;
    for (let at = 1, reached = true; reached; at++, rounds++) {
      let commits = 0;
      const { post, clock, memory, runs } = service({
        plans: {
          slow: { providers: [[{ text: "slow", delay_ms: 1_000 }]] },
          p: { providers: [[calls(["t"]), "done"]], tools: [tool("t")] },
        },
        store: (memory) => {
          const commit = memory.commit.bind(memory);
          memory.commit = (changes, fence) => {
            const is_counted = JSON.stringify(changes).includes(waits ? "run_2" : "run_1");
            if (is_counted && ++commits === at) throw new Error("disk full");
            return commit(changes, fence);
          };
          return new SlowStore(memory);
        },
      });
      const first = waits ? await post("slow") : null;
      if (first) await until(() => clock.pending > 1);
      const fields = first ? { session_id: first.session_id, if_busy: "queue" as const } : {};
      const handle = await post("p", fields).catch(() => null);
      if (first) await clock.advance(1_000);
      await first?.settled("end");
      // a failed commit of the end is tried again
      while (handle && handle.current().ended_at === null) await clock.advance(50);
      const run = await handle?.settled("end");
      if (run) {
        const last = memory.entries(run.id, 0, 1_000)!.at(-1) as Entry;
        assertEquals(
          [memory.get("run", run.id)!.value.status, last.event],
          [run.status, "run:end"],
          String(at),
        );
      }
      reached = commits >= at;
      const session_id = first?.session_id ?? run?.session_id;
      const next = await post("p", session_id ? { session_id, if_busy: "queue" } : {});
      assertEquals((await next.settled("end")).status, "completed", String(at));
      await runs.close();
    }
    assert(rounds > 3, `${rounds} rounds`);
  });
}

Deno.test("the commit after a failed one stores its entries too: the log has no gap", async () => {
  const { post, entries } = service({
    plans: { p: { providers: [[calls(["t"]), "done"]], tools: [tool("t")] } },
    store: (memory) => {
      const commit = memory.commit.bind(memory);
      let once = true;
      memory.commit = (changes, fence) => {
        const append = changes.find((change) => "append" in change);
        if (once && append && append.after > 0) {
          once = false;
          throw new Error("busy");
        }
        return commit(changes, fence);
      };
      return new SlowStore(memory);
    },
  });
  const run = await (await post("p")).settled("end");
  const log = await entries(run.id);
  assertEquals(log.map((entry) => entry.seq), log.map((_, index) => index + 1));
  assertEquals(log.at(-1)?.event, "run:end");
});

Deno.test("a run whose lease another process acquired cannot commit", async () => {
  const { post, memory, clock, runs } = service({
    plans: { slow: { providers: [[{ text: "slow", delay_ms: 1_000 }]] } },
  });
  const handle = await post("slow");
  await until(() => clock.pending > 1);
  const before = memory.entries(handle.id, 0, 1_000)!.length;
  memory.release(`session/${handle.session_id}`, "proc_1");
  memory.acquire(`session/${handle.session_id}`, "somebody");
  await clock.advance(1_000);
  assertEquals((await handle.settled("end")).status, "running"); // the other process says how it ends
  assertEquals(memory.entries(handle.id, 0, 1_000)!.length, before);
  assertEquals(memory.get("run", handle.id)?.value.status, "running");
  await runs.drain(0);
  assert(new ConflictError("x") instanceof Error);
});

Deno.test("all entries of one run have the expected envelope and order", async () => {
  const { finish, entries } = service();
  const run = await finish("plain");
  const log: Entry[] = await entries(run.id);
  assertEquals(Object.keys(log[0]!), ["seq", "event", "ts", "run_id", "session_id", "data"]);
  for (const entry of log) {
    assertEquals([entry.run_id, entry.session_id], [run.id, run.session_id]);
    assertMatch(entry.ts, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  }
});
