// extensions/distributed/sockets.cpp: TCP, to names and numbers of either family.
#include "sockets.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <adjoin/kit/error.hpp>
#include <algorithm>
#include <cerrno>
#include <memory>
#include <thread>

namespace adjoin::distributed {

using kit::raise;

namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// A number is not looked up anywhere.
Addresses addresses(const std::string& host, int port, bool to_listen) {
  addrinfo wanted = {};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  const char* name = host.empty() ? nullptr : host.c_str();
  int error = getaddrinfo(name, service.c_str(), &wanted, &found);
  if (error)
    raise(AJ_UNAVAILABLE, "the address ", host, ":", port, " is not known: ", gai_strerror(error),
          "; set MASTER_ADDR to a name or number that this machine can reach");
  return {found, &freeaddrinfo};
}

void talk_at_once(int descriptor) {
  int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// 0, or why not.
int try_connect(int descriptor, const sockaddr* to, socklen_t size, int64_t timeout_ms) {
  const int flags = fcntl(descriptor, F_GETFL);
  fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
  if (connect(descriptor, to, size) != 0) {
    if (errno != EINPROGRESS) return errno;
    pollfd waiting = {descriptor, POLLOUT, 0};
    if (poll(&waiting, 1, int(std::clamp<int64_t>(timeout_ms, 1, 1 << 30))) <= 0) return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error) return error;
  }
  fcntl(descriptor, F_SETFL, flags);
  return 0;
}

// A connection to an own free port may meet itself.
bool meets_itself(int descriptor) {
  sockaddr_storage here = {}, there = {};
  socklen_t a = sizeof here, b = sizeof there;
  getsockname(descriptor, reinterpret_cast<sockaddr*>(&here), &a);
  getpeername(descriptor, reinterpret_cast<sockaddr*>(&there), &b);
  return a == b && std::memcmp(&here, &there, a) == 0;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = other.release();
  }
  return *this;
}
void Socket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}
int Socket::release() { return std::exchange(descriptor_, -1); }

Socket listen_at(const std::string& host, int* port) {
  Addresses found = addresses(host, *port, true);
  int error = 0;
  for (const addrinfo* a = found.get(); a; a = a->ai_next) {
    Socket s(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    int on = 1, off = 0;
    setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) setsockopt(s.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (!s || bind(s.get(), a->ai_addr, a->ai_addrlen) != 0 || listen(s.get(), 4096) != 0) {
      error = errno;
      continue;
    }
    sockaddr_storage got = {};
    socklen_t length = sizeof got;
    getsockname(s.get(), reinterpret_cast<sockaddr*>(&got), &length);
    *port = ntohs(got.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(got).sin6_port
                                            : reinterpret_cast<sockaddr_in&>(got).sin_port);
    return s;
  }
  raise(AJ_UNAVAILABLE, "cannot listen at ", host.empty() ? "*" : host.c_str(), ":", *port, ": ",
        std::strerror(error),
        error == EADDRINUSE ? "; another process listens there: choose another port (MASTER_PORT), "
                              "or let `adjoin launch` find a free one"
                            : "; rank 0 listens at MASTER_ADDR, an address of its own machine");
}

Socket connect_to(const std::string& host, int port, int64_t timeout_ms) {
  const int64_t until = now_ms() + timeout_ms;
  int error = 0;
  for (int64_t pause = 2;; pause = std::min<int64_t>(pause * 2, 50)) {
    Addresses found = addresses(host, port, false);
    for (const addrinfo* a = found.get(); a; a = a->ai_next) {
      Socket s(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
      if (!s) continue;
      error = try_connect(s.get(), a->ai_addr, a->ai_addrlen, until - now_ms());
      if (error || meets_itself(s.get())) continue;
      talk_at_once(s.get());
      return s;
    }
    if (now_ms() >= until) break;
    if (kit::core().interrupted()) raise(AJ_CANCELLED, "interrupted");
    std::this_thread::sleep_for(milliseconds(pause));
  }
  raise(AJ_DEADLINE, "nobody answers at ", host, ":", port, " within ", timeout_ms / 1000,
        " s: ", std::strerror(error),
        "; rank 0 listens there: is it running, and is MASTER_ADDR its machine?");
}

std::string own_address(const Socket& s) {
  sockaddr_storage here = {};
  socklen_t length = sizeof here;
  char text[INET6_ADDRSTRLEN] = "";
  getsockname(s.get(), reinterpret_cast<sockaddr*>(&here), &length);
  if (here.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<sockaddr_in&>(here).sin_addr, text, sizeof text);
  } else {
    const in6_addr& a = reinterpret_cast<sockaddr_in6&>(here).sin6_addr;
    if (IN6_IS_ADDR_V4MAPPED(&a))
      inet_ntop(AF_INET, a.s6_addr + 12, text, sizeof text);
    else
      inet_ntop(AF_INET6, &a, text, sizeof text);
  }
  return text;
}

std::string host_name() {
  char text[256] = "";
  gethostname(text, sizeof text - 1);
  return text;
}

bool send_all(const Socket& s, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t n = send(s.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(size_t(n));
  }
  return true;
}

}  // namespace adjoin::distributed
