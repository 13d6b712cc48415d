/** The child of the process tier under `deno run`; the compiled program takes the role `child guest`. */
import { runGuestChild } from "./child.ts";

await runGuestChild();
