import { FakeClock } from "../../src/testing/clocks.ts";
import { type Dropped, MemoryStore } from "../../src/store/memory.ts";
import { assertEquals } from "../assert.ts";
import { testStore } from "../contracts/store.ts";

testStore("MemoryStore", () => {
  const clock = new FakeClock();
  return { store: new MemoryStore({ now: () => clock.now() }), advance: (ms) => clock.advance(ms) };
});

const entries = (count: number) => Array.from({ length: count }, (_, index) => ({ seq: index + 1 }));
const run = (key: string, open: boolean) => ({
  put: { kind: "run", key, namespace: "a", value: {}, index: { open: String(open) } },
});

Deno.test("MemoryStore drops the oldest logs of ended runs first when it is full", () => {
  const store = new MemoryStore({ max_entries: 100 });
  store.commit([run("open", true), { append: "open", after: 0, entries: entries(40) }]);
  store.commit([run("old", false), { append: "old", after: 0, entries: entries(30) }]);
  store.commit([run("young", false), { append: "young", after: 0, entries: entries(20) }]);
  store.commit([run("new", true), { append: "new", after: 0, entries: entries(20) }]);
  const lengths = ["open", "old", "young", "new"].map((log) => store.entries(log, 0, 1000)?.length ?? null);
  assertEquals(lengths, [40, null, 20, 20]);
});

Deno.test("MemoryStore never drops the log that grows", () => {
  const store = new MemoryStore({ max_entries: 10 });
  store.commit([{ append: "log", after: 0, entries: entries(50) }]);
  store.commit([{ append: "log", after: 50, entries: [{ seq: 51 }] }]);
  assertEquals(store.entries("log", 50, 10), [{ seq: 51 }]);
});

Deno.test("MemoryStore drops the least used records first, with their logs, and never open ones", () => {
  const store = new MemoryStore({ max_records: 10 });
  store.commit([run("open", true), { append: "open", after: 0, entries: entries(1) }]);
  store.commit([run("first", false), { append: "first", after: 0, entries: entries(1) }]);
  for (let n = 0; n < 8; n++) store.commit([run(`r${n}`, false)]);
  store.commit([run("r0", false)]);
  store.commit([run("last", false)]);
  const there = (key: string) => store.get("run", key) !== null;
  assertEquals(["open", "first", "r0", "r1", "last"].map(there), [true, false, true, false, true]);
  assertEquals([store.entries("open", 0, 9)?.length, store.entries("first", 0, 9)], [1, null]);
});

Deno.test("MemoryStore drops closed logs, then the least used records, when there are too many bytes, and never open ones", () => {
  const store = new MemoryStore({ max_bytes: 10_000 });
  const text = (length: number) => "x".repeat(length);
  const session = (key: string) => ({
    put: { kind: "session", key, namespace: "a", value: { text: text(2_500) }, expires_ms: Infinity },
  });
  const log = (append: string) => ({ append, after: 0, entries: [{ seq: 1, text: text(1_500) }] });
  const question = { kind: "approval", key: "open/apr", namespace: "a", value: { status: "pending" } };
  store.commit([run("open", true), log("open"), { put: question }, session("s1")]);
  store.commit([run("old", false), log("old"), session("s2")]);
  assertEquals(["open", "old"].map((name) => store.entries(name, 0, 9)?.length ?? null), [1, 1]);
  store.commit([session("s3")]); // dropping the closed log suffices
  assertEquals(["open", "old"].map((name) => store.entries(name, 0, 9)?.length ?? null), [1, null]);
  store.commit([session("s1"), session("s4"), session("s5")]);
  const there = ["s1", "s2", "s3", "s4", "s5"].filter((key) => store.get("session", key) !== null);
  assertEquals(there.at(-1), "s5");
  assertEquals(there.includes("s2"), false);
  assertEquals(store.entries("open", 0, 9)?.length, 1);
  assertEquals(store.get("run", "open") !== null, true);
  assertEquals(store.get("approval", "open/apr") !== null, true);
});

Deno.test("MemoryStore reports what it dropped, with the exceeded bound, at most once a minute", async () => {
  const clock = new FakeClock();
  const reports: Dropped[] = [];
  const onDrop = (dropped: Dropped) => void reports.push(dropped);
  const store = new MemoryStore({ now: () => clock.now(), max_entries: 20, max_records: 10, onDrop });
  const add = (key: string, count: number) =>
    store.commit([run(key, false), { append: key, after: 0, entries: entries(count) }]);
  add("a", 10);
  add("b", 10);
  assertEquals(reports, []);
  add("c", 10);
  assertEquals(reports, [{ limit: "max_entries", logs: 2, records: 0 }]);
  for (let n = 0; n < 8; n++) add(`n${n}`, 0);
  assertEquals(reports.length, 1);
  await clock.advance(60_000);
  for (let n = 0; n < 3; n++) add(`m${n}`, 1);
  assertEquals(reports, [
    { limit: "max_entries", logs: 2, records: 0 },
    { limit: "max_records", logs: 2, records: 4 },
  ]);
});

Deno.test("MemoryStore frees the space of an expired log without being asked", async () => {
  const clock = new FakeClock();
  const reports: Dropped[] = [];
  const store = new MemoryStore({
    now: () => clock.now(),
    max_entries: 10,
    onDrop: (dropped) => reports.push(dropped),
  });
  store.commit([run("a", false), { append: "a", after: 0, entries: entries(8) }]);
  store.commit([{ expireLog: "a", at_ms: clock.now() + 5 }]);
  await clock.advance(5);
  store.commit([run("b", false), { append: "b", after: 0, entries: entries(8) }]);
  assertEquals([reports, store.entries("b", 0, 9)?.length], [[], 8]);
});

Deno.test("MemoryStore frees the space of what is deleted", () => {
  const store = new MemoryStore({ max_bytes: 10_000 });
  for (let n = 0; n < 50; n++) {
    const key = `s${n}`;
    store.commit([
      { put: { kind: "session", key, namespace: "a", value: { text: "x".repeat(3_000) } } },
      { append: key, after: 0, entries: [{ seq: 1 }] },
    ]);
    store.commit([{ delete: { kind: "session", key } }, { deleteLog: key }]);
  }
  const kept = { put: { kind: "session", key: "kept", namespace: "a", value: { text: "x".repeat(6_000) } } };
  store.commit([kept]);
  store.commit([{ put: { ...kept.put, key: "small", value: {} } }]);
  assertEquals(store.get("session", "kept") !== null, true);
});
