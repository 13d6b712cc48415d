/** The validator child under `deno run`; the compiled program takes the role `child validate`. */
import { runValidatorChild } from "./child.ts";

await runValidatorChild();
