import { assertEquals } from "../assert.ts";
import { CANONICAL_EVENTS, GATES } from "../../src/sdk/event_table.ts";
import { EVENT_DATA } from "../../src/sdk/schemas/event_data.ts";

const PAGE = new URL("../../src/docs/events.md", import.meta.url);

Deno.test("the table of src/docs/events.md has every event once, and marks the gates", async () => {
  const text = await Deno.readTextFile(PAGE);
  const section = text.slice(text.indexOf("\n## The events\n")).split("\n## ")[1]!;
  const cells = [...section.matchAll(/^\| (`.*?) +\|/gm)].map(([, cell]) => cell!);
  const events = cells.flatMap((cell) =>
    [...cell.matchAll(/`([a-z_]+:[a-z_-]+)`/g)].map(([, name]) => name!)
  );
  assertEquals(events.sort(), [...CANONICAL_EVENTS].sort());
  const gates = cells.flatMap((cell) =>
    [...cell.matchAll(/`([a-z_:]+)` \(gate\)/g)].map(([, name]) => name!)
  );
  assertEquals(gates.sort(), [...GATES].sort());
});

Deno.test("every event has a schema of its data", () => {
  assertEquals(Object.keys(EVENT_DATA).sort(), [...CANONICAL_EVENTS].sort());
});
