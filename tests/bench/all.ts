/**
 * `deno task bench`: runs all benches in sequence, or those named as arguments, such as `run http`. When one
 * fails, the others still run and the exit code is 1.
 */
import { print } from "./figures.ts";

/** Benches in order, with their flags. */
const BENCHES: readonly (readonly [name: string, ...flags: string[]])[] = [
  ["start"],
  ["run"],
  ["http"],
  ["burst"],
  ["store"],
  ["store_requests"],
  ["replicas"],
  ["live_streams"],
  ["slow_readers"],
  ["hooks"],
  ["tools"],
  ["files"],
  ["memory", "--v8-flags=--expose-gc"],
  ["garbage", "--v8-flags=--expose-gc"],
  ["context"],
  ["loader"],
  ["sandbox"],
  ["inputs"],
  ["page"],
];

const names = BENCHES.map(([name]) => name);
const unknown = Deno.args.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  print(`Cannot run "${unknown.join(", ")}": the benches are ${names.join(", ")}`);
  Deno.exit(2);
}

const failed: string[] = [];
for (const [name, ...flags] of BENCHES) {
  if (Deno.args.length > 0 && !Deno.args.includes(name)) continue;
  print(`== ${name}`);
  const { success } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", ...flags, `${name}_bench.ts`],
    cwd: new URL("./", import.meta.url),
    stdout: "inherit",
    stderr: "inherit",
  }).spawn().status;
  if (!success) failed.push(name);
  print();
}
print(failed.length === 0 ? "all benches done" : `failed: ${failed.join(", ")}`);
Deno.exit(failed.length === 0 ? 0 : 1);
