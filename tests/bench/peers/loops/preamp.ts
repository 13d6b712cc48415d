/** Preamp: a complete run with guards, events and a stored log. */
import {
  CALLER,
  checkScripted,
  openScripted,
  type ScriptedRuntime,
  startScripted,
} from "../../scripted_runs.ts";
import type { Script } from "../../modules/scripted.ts";
import type { Contestant, Outcome } from "./contestant.ts";

/** Creates the contestant. */
export function create(): Contestant {
  const runtime = openScripted();
  return {
    name: "Preamp",
    run: (script) => run(runtime, script),
    close: () => runtime.close(),
  };
}

async function run(runtime: ScriptedRuntime, script: Script): Promise<Outcome> {
  const handle = await startScripted(runtime, script);
  let deltas = 0;
  if (script.deltas) {
    for await (const page of runtime.runs.follow(CALLER, handle.id, {})) {
      for (const { event } of page) if (event === "content_block:delta") deltas++;
    }
  }
  const ended = await handle.settled("end");
  checkScripted(ended, script);
  return {
    answers: ended.turn_count,
    executed: (script.turns ?? 0) * (script.calls ?? 1), // a missing call would end the run with an error
    deltas,
    text: ended.output_text,
  };
}
