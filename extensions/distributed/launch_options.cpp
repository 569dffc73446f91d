// extensions/distributed/launch_options.cpp: torchrun's flags.
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "launch.hpp"

namespace adjoin::distributed {

using kit::raise_as;

const char kLaunchHelp[] =
    "usage: adjoin launch [options] PROGRAM [argument]...\n"
    "\n"
    "Runs a Python program in several processes, with the variables RANK, LOCAL_RANK, WORLD_SIZE,\n"
    "MASTER_ADDR and those of torchrun. In it `import torch` is Adjoin, and\n"
    "init_process_group() finds the others. When one ends with an error the others hear it\n"
    "within a second, and a summary names the first cause.\n"
    "\n"
    "  --nproc-per-node N      processes on this machine (1); auto, cpu: one per core\n"
    "  --nnodes N              machines (1)\n"
    "  --node-rank N           which one this is; without it they count themselves\n"
    "  --master-addr HOST      the machine of rank 0 (this one)\n"
    "  --master-port PORT      where it listens; with one machine a free port is found\n"
    "  --rdzv-endpoint H[:P]   the same as master-addr and master-port\n"
    "  --rdzv-id ID            the job's name (none)\n"
    "  --rdzv-backend NAME     c10d and static mean the same here\n"
    "  --standalone            one machine, a free port\n"
    "  --max-restarts N        starts all again after an error, N times at most (0)\n"
    "  --role NAME             ROLE_NAME (default)\n"
    "  --log-dir DIR           what the processes print goes to DIR/ATTEMPT/RANK/stdout.log and "
    "stderr.log, too\n"
    "  --tee, -t N             each line of output begins with [ROLE RANK]:\n"
    "  --shutdown-timeout S    so long after the signal to end a process is killed (10)\n"
    "  -m, --module            PROGRAM is a module\n"
    "  --no-python             PROGRAM is run as it is\n";

namespace {

int number_of(const std::string& flag, const std::string& text, int least) {
  char* end = nullptr;
  const long n = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end || n < least || n > 1 << 30)
    raise_as("ValueError", AJ_INVALID_ARGUMENT, flag, " is '", text, "'; wanted is a number from ",
             least, " on");
  return int(n);
}

void endpoint(LaunchOptions& o, const std::string& flag, const std::string& text) {
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string::npos && text.find(']', colon) == std::string::npos;
  o.master = text.substr(0, has_port ? colon : std::string::npos);
  if (has_port) o.master_port = number_of(flag, text.substr(colon + 1), 0);
}

// Options that whoever made the machines has left in variables, as torchrun reads them: PET_NNODES
// is
// --nnodes. What stands in the line counts more.
std::vector<std::string> with_variables(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const char* flag : {"nnodes", "nproc-per-node", "node-rank", "master-addr", "master-port",
                           "rdzv-endpoint", "rdzv-id", "rdzv-backend", "max-restarts"}) {
    std::string name = "PET_";
    for (const char* c = flag; *c; c++) name += *c == '-' ? '_' : char(*c & ~0x20);
    const char* told = secure_getenv(name.c_str());
    if (told && *told) all.push_back(std::string("--") + flag + "=" + told);
  }
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

// The first name in SLURM's list: "gpu[07-09,12],login" begins with gpu07.
std::string first_of(const std::string& nodes) {
  const size_t bracket = nodes.find_first_of("[,");
  std::string name = nodes.substr(0, bracket);
  if (bracket != std::string::npos && nodes[bracket] == '[')
    name += nodes.substr(bracket + 1, nodes.find_first_of("-,]", bracket) - bracket - 1);
  return name;
}

// Several machines: which one is this, and where do they meet?
void ask_the_scheduler(LaunchOptions& o) {
  for (const char* name : {"SLURM_NODEID", "JOB_COMPLETION_INDEX"})
    if (const char* told = secure_getenv(name); told && o.node_rank < 0)
      o.node_rank = number_of(name, told, 0);
  const char* nodes = secure_getenv("SLURM_STEP_NODELIST");
  const char* job = secure_getenv("SLURM_JOB_ID");
  if (!nodes || !job || !o.master.empty()) return;
  o.master = first_of(nodes);
  if (!o.master_port) o.master_port = 20000 + number_of("SLURM_JOB_ID", job, 0) % 20000;
}

}  // namespace

LaunchOptions parse_launch(const std::vector<std::string>& given) {
  const std::vector<std::string> words = with_variables(given);
  LaunchOptions o;
  size_t i = 0;
  for (; i < words.size() && words[i].starts_with("-"); i++) {
    std::string flag = words[i];
    if (flag == "--") {
      i++;
      break;
    }
    std::string value;
    const size_t equals = flag.find('=');
    const bool has_value = equals != std::string::npos;
    if (has_value) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    }
    std::replace(flag.begin() + 2, flag.end(), '_', '-');
    auto take = [&]() -> const std::string& {
      if (!has_value) {
        if (++i >= words.size())
          raise_as("ValueError", AJ_INVALID_ARGUMENT, flag, " wants a value");
        value = words[i];
      }
      return value;
    };
    if (flag == "--help" || flag == "-h") {
      o.help = true;
    } else if (flag == "--nproc-per-node") {
      const std::string& n = take();
      o.processes = n == "auto" || n == "cpu"
                        ? int(std::max(1u, std::thread::hardware_concurrency()))
                        : number_of(flag, n, 1);
    } else if (flag == "--nnodes") {
      const std::string& n = take();
      const size_t colon = n.find(':');
      o.nodes = number_of(flag, colon == std::string::npos ? n : n.substr(colon + 1), 1);
      if (colon != std::string::npos && n.substr(0, colon) != n.substr(colon + 1))
        raise_as("NotImplementedError", AJ_UNIMPLEMENTED, "--nnodes ", n,
                 ": a number of machines that changes is not served; give one number");
    } else if (flag == "--node-rank") {
      o.node_rank = number_of(flag, take(), 0);
    } else if (flag == "--master-addr") {
      o.master = take();
    } else if (flag == "--master-port") {
      o.master_port = number_of(flag, take(), 0);
    } else if (flag == "--rdzv-endpoint") {
      endpoint(o, flag, take());
    } else if (flag == "--rdzv-id") {
      o.run_id = take();
    } else if (flag == "--rdzv-backend") {
      if (const std::string& name = take(); name != "c10d" && name != "static")
        raise_as("ValueError", AJ_INVALID_ARGUMENT, "--rdzv-backend ", name,
                 ": there are c10d and static, which mean the same here");
    } else if (flag == "--max-restarts") {
      o.restarts = number_of(flag, take(), 0);
    } else if (flag == "--role") {
      o.role = take();
    } else if (flag == "--log-dir") {
      o.log_folder = take();
    } else if (flag == "--tee" || flag == "-t") {
      o.prefix = take() != "0";
    } else if (flag == "--shutdown-timeout") {
      o.shutdown_seconds = number_of(flag, take(), 0);
    } else if (flag == "--standalone") {
      o.standalone = true;
    } else if (flag == "-m" || flag == "--module") {
      o.is_module = true;
    } else if (flag == "--no-python") {
      o.plain_program = true;
    } else if (flag == "--run-path") {
      // A file is run as __main__ anyway.
    } else if (flag == "--monitor-interval" || flag == "--start-method" || flag == "--rdzv-conf" ||
               flag == "--redirects" || flag == "-r" || flag == "--local-addr" ||
               flag == "--local-ranks-filter" || flag == "--logs-specs" ||
               flag == "--numa-binding" || flag == "--signals-to-handle") {
      std::cerr << "adjoin launch: " << flag << " " << take() << " has no meaning here\n";
    } else {
      raise_as("ValueError", AJ_INVALID_ARGUMENT, "there is no option ", words[i],
               "; adjoin launch --help lists them");
    }
  }
  o.program.assign(words.begin() + long(i), words.end());
  if (o.help) return o;
  if (o.program.empty())
    raise_as("ValueError", AJ_INVALID_ARGUMENT, "which program?\n", std::string_view(kLaunchHelp));
  if (o.standalone) {
    o.nodes = 1;
    o.node_rank = 0;
    o.master.clear();
    o.master_port = 0;
  }
  if (o.nodes > 1) ask_the_scheduler(o);
  if (o.nodes > 1 && (o.master.empty() || !o.master_port))
    raise_as("ValueError", AJ_INVALID_ARGUMENT,
             "with several machines all must know where to meet: --rdzv-endpoint HOST:PORT, or "
             "--master-addr "
             "and --master-port, an address of the first machine and a free port of it");
  if (o.nodes > 1 && o.restarts)
    raise_as(
        "NotImplementedError", AJ_UNIMPLEMENTED,
        "--max-restarts with several machines is not served; restart the job from its checkpoint");
  if (o.node_rank >= o.nodes)
    raise_as("ValueError", AJ_INVALID_ARGUMENT, "--node-rank ", o.node_rank, " with --nnodes ",
             o.nodes);
  if (o.nodes == 1) o.node_rank = 0;
  return o;
}

}  // namespace adjoin::distributed
