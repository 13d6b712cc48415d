/** A run in the page: it is drawn again when something of it changes, and not more often. */
import { effect } from "@preact/signals";
import { RunView, watched } from "../../../src/server/page/app/state/run_view.ts";
import { assertEquals } from "../../assert.ts";
import { type Draft, entriesOf, shownItems } from "../../support/log_entries.ts";

Deno.test("entries that are there already are skipped", () => {
  const entries = entriesOf([["prompt:submit", { prompt: "a" }], ["prompt:submit", { prompt: "b" }]]);
  const view = new RunView("run_1");
  view.add([...entries, ...entries]);
  view.add(entries);
  assertEquals([view.count.value, view.entries.length, shownItems(view.thread.value)], [
    2,
    2,
    ["prompt: a", "prompt: b"],
  ]);
});

Deno.test("five thousand deltas in one batch draw once", () => {
  const block = { request_id: "req_1", block_index: 0 };
  const view = new RunView("run_1");
  let drawn = 0;
  view.count.subscribe(() => drawn++);
  const delta: Draft = ["content_block:delta", { ...block, delta: "ab" }];
  view.add(
    entriesOf([["content_block:start", { ...block, block_type: "text" }], ...Array(5_000).fill(delta)]),
  );
  const [item] = view.thread.value!.items;
  assertEquals([drawn, item?.kind === "text" && item.text.length], [2, 10_000]);
});

Deno.test("an item is drawn again when it changes, once for a batch, and others are not", () => {
  const block = { request_id: "req_1", block_index: 0 };
  const entries = entriesOf([
    ["prompt:submit", { prompt: "go" }],
    ["content_block:start", { ...block, block_type: "text" }],
    ["content_block:delta", { ...block, delta: "a" }],
    ["content_block:delta", { ...block, delta: "b" }],
  ]);
  const view = new RunView("run_1");
  view.add(entries.slice(0, 2));
  const drawn: string[] = [];
  for (const item of view.thread.value!.items) {
    effect(() => {
      const { kind, text } = watched(item) as { kind: string; text: string };
      drawn.push(`${kind} ${text}`);
    });
  }
  view.add(entries);
  assertEquals(drawn, ["prompt go", "text ", "text ab"]);
});
