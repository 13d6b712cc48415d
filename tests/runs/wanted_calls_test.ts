import fc from "fast-check";
import { type CallPlace, WantedCalls } from "../../src/runs/replay/wanted_calls.ts";
import type { Entry } from "../../src/kernel/host.ts";
import { estimateJsonBytes } from "../../src/sdk/json.ts";
import type { ModelRequest, Page } from "../../src/runs/types.ts";
import { assert, assertEquals } from "../assert.ts";

Deno.test("WantedCalls: the pages of any turns have each request once, in order, and are bounded", () => {
  const turn = fc.array(fc.record({ chars: fc.nat(50), shortened: fc.boolean() }), { maxLength: 8 });
  fc.assert(
    fc.property(
      fc.array(turn, { maxLength: 4 }),
      fc.nat(3),
      fc.integer({ min: 1, max: 400 }),
      (sizes, limit, max_bytes) => {
        // calls of several turns, interleaved as in a log
        const longest = Math.max(0, ...sizes.map(({ length }) => length));
        const calls = Array.from({ length: longest }, (_, index) => index).flatMap((index) =>
          sizes.flatMap((turn, at) => turn[index] ? [{ turn: at, ...turn[index] }] : [])
        ).map((call, index) => ({ ...call, seq: 2 * index + 1 }));
        const entries = calls.flatMap((
          { seq },
        ) => [{ event: "provider:request", seq }, { event: "other", seq: seq + 1 }]);
        const requestsOf = ({ seq, chars, shortened }: typeof calls[number]) =>
          (shortened ? [chars + 1, chars] : [chars]).map((count) =>
            ({ seq, messages: "x".repeat(count) }) as unknown as ModelRequest
          );
        const pages: ModelRequest[] = [];
        let cursor: string | null = "0";
        for (let count = 0; cursor !== null; count++) {
          assert(count <= calls.length, "a page has no call");
          const place: CallPlace = { cursor: Number(cursor), limit: limit + 1, max_bytes };
          const wanted: WantedCalls = new WantedCalls(entries as unknown as Entry[], place);
          for (const at of sizes.keys()) {
            for (const call of calls.filter(({ turn }) => turn === at)) {
              if (wanted.isPast(call.seq)) break;
              if (wanted.has(call.seq)) { for (const request of requestsOf(call)) wanted.add(request); }
            }
          }
          const { data, next_cursor }: Page<ModelRequest> = wanted.page;
          assert(new Set(data.map(({ seq }) => seq)).size <= limit + 1);
          const bytes = data.reduce((sum, request) => sum + estimateJsonBytes(request), 0);
          assert(bytes < max_bytes + 300, `${bytes} of ${max_bytes}`); // a call more at most
          pages.push(...data);
          cursor = next_cursor;
        }
        assertEquals(pages, calls.flatMap(requestsOf));
      },
    ),
  );
});
