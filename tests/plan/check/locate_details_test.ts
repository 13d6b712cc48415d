import { formatDetail } from "../../../src/plan/check/findings.ts";
import { withPlaces } from "../../../src/plan/check/locate_details.ts";
import { assertEquals } from "../../assert.ts";

Deno.test("a finding about a module's file is shown with that file, never with the plan's name or place", async () => {
  const message = 'Unexpected ";"';
  const in_module = { path: "./x.ts", file: "./x.ts", line: 2, column: 13, message };
  const fetched = { path: "tools[0].source", message: "Cannot fetch it" };
  const details = await withPlaces(
    [in_module, fetched, { path: "tools[0]", file: "./y.ts", message }],
    'tools:\n  - source: "./x.ts"\n',
  );
  assertEquals(details.map((detail) => formatDetail(detail, "plan.yaml")), [
    './x.ts:2:13  Unexpected ";"',
    "plan.yaml:2:5  tools[0].source  Cannot fetch it",
    './y.ts  Unexpected ";"',
  ]);
});
