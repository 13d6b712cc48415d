/**
 * `deno task bench`: every bench of the product, one after the other. One that fails does not keep the others from running;
 * the exit code tells. Names as arguments: only these, such as `loop http`.
 */
import { print } from "./figures.ts";

/** In the order of what a user meets: start, request, stream, loop, and then what they are made of. */
const BENCHES: readonly (readonly [name: string, ...flags: string[]])[] = [
  ["start"],
  ["http"],
  ["stream"],
  ["loop"],
  ["hooks"],
  ["tools"],
  ["events"],
  ["memory", "--v8-flags=--expose-gc"],
  ["context"],
  ["loader"],
  ["sandbox"],
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
