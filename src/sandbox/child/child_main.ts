/** First file of the child of the process tier under `deno run`. The compiled program uses the role `child guest`. */
import { runGuestChild } from "./child.ts";

await runGuestChild();
